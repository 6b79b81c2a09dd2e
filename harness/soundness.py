"""Whether a worker is fit for the next case, whatever the last one's kernel did to it."""

from __future__ import annotations

from harness.errors import first_line


def device_fault(device: str) -> str | None:
    """The fault of the device, which stays with its process for good, or None."""
    if not device.startswith("cuda"):
        return None
    import torch

    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        return first_line(error)
    return None


def settings(device: str) -> dict[str, object]:
    """What of torch's state in this process changes how any kernel is measured; rounding is set anew for each case."""
    import torch

    found: dict[str, object] = {
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "number of threads": torch.get_num_threads(),
        "gradients": torch.is_grad_enabled(),
        "deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
    }
    if device.startswith("cuda"):
        found["current device"] = torch.cuda.current_device()
        found["current stream"] = torch.cuda.current_stream().cuda_stream
    return found


def changed(before: dict[str, object], now: dict[str, object]) -> str | None:
    """What of `settings` a case has left changed, in words, or None."""
    names = [name for name, value in now.items() if value != before[name]]
    return f"a kernel changed torch's {', '.join(names)}" if names else None
