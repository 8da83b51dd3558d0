"""Chooses the build of torch that fits this machine, without torch.

`choose_build` and the other decisions are pure; what looks at the machine stands behind them.
"""

import ctypes
import os
import platform
import re
import subprocess
import threading
from pathlib import Path
from typing import NamedTuple

TORCH_INDEX = "https://download.pytorch.org/whl"
PROBE_SECONDS = 3.0


class SetUpError(Exception):
    """A set-up that cannot go on: what failed, and what the person can do."""

    def __init__(self, message: str, remedy: str) -> None:
        """Keeps the message and the remedy apart, to be shown one below the other."""
        super().__init__(message)
        self.message, self.remedy = message, remedy


class Card(NamedTuple):
    """A graphics card: its maker, the newest CUDA its driver runs (13000 is 13.0), generation."""

    maker: str
    cuda: int = 0
    capability: tuple[int, int] = (0, 0)


NO_CARD = Card("none")


class Machine(NamedTuple):
    """What decides which build of torch fits: system, processor, card."""

    system: str
    processor: str
    card: Card = NO_CARD

    @property
    def is_arm(self) -> bool:
        """Whether the processor is a 64-bit ARM."""
        return self.processor.lower() in ("arm64", "aarch64")


class Build(NamedTuple):
    """A build of torch: its folder on torch's own index ("" for pip's index), and the reason."""

    folder: str
    reason: str


def choose_build(machine: Machine, cpu: bool) -> Build:
    """The build of torch that fits the machine."""
    if machine.system == "Darwin":
        return mac_build(machine)
    if cpu:
        return cpu_build(machine, "--cpu was given")
    if machine.card.maker == "nvidia":
        return cuda_build(machine)
    if machine.card.maker == "amd" and machine.system == "Linux" and not machine.is_arm:
        return Build("rocm7.2", "an AMD card was found")
    return cpu_build(machine, "no usable graphics card was found")


def mac_build(machine: Machine) -> Build:
    """The one build for Macs, which holds Apple's GPU; there is none for Intel processors."""
    if machine.is_arm:
        return Build("", "on Apple silicon one build serves CPU and GPU")
    raise SetUpError(
        "This Python is built for Intel Macs, and torch no longer comes for them.",
        "On Apple silicon, install a Python for arm64 and start again with it.",
    )


def cpu_build(machine: Machine, reason: str) -> Build:
    """The build for the CPU: pip's index brings it on Windows, but gigabytes of CUDA on Linux."""
    return Build("cpu" if machine.system == "Linux" else "", reason)


def cuda_build(machine: Machine) -> Build:
    """The CUDA build for the card's generation and driver, as listed in torch 2.13's RELEASE.md.

    CUDA 13.0: Turing and later (on ARM: Ampere and later). CUDA 12.6: Maxwell to Hopper (on ARM:
    Ampere and Hopper). The wheels were not tried on every generation.
    """
    cuda, generation = machine.card.cuda, machine.card.capability
    words = f"an NVIDIA card (compute capability {generation[0]}.{generation[1]}) was found"
    if cuda >= 13000 and generation >= ((8, 0) if machine.is_arm else (7, 5)):
        return Build("cu130", words)
    # A driver for any CUDA 12 runs the 12.6 build; Blackwell (10.0) needs 12.8 or later.
    if cuda >= 12000 and ((8, 0) if machine.is_arm else (5, 0)) <= generation < (10, 0):
        return Build("cu126", words)
    return cpu_build(machine, words + ", but it or its driver is too old for torch")


def plain_pin_warning(machine: Machine, build: Build) -> str:
    """What pip's own index may bring in place of the build: "" where it is as good."""
    if build.folder == "cpu":
        return "That may be the CUDA build, gigabytes larger."
    if machine.system == "Windows" or build.folder != "cu130":
        return "That may be a build that cannot use this card."
    return ""


def torch_arguments(build: Build, version: str) -> list[str]:
    """What pip is asked for: the build by its local version, so that no other index can serve."""
    if not build.folder:
        return [f"torch=={version}"]
    wanted = f"torch=={version}+{build.folder}"
    return [wanted, "--extra-index-url", f"{TORCH_INDEX}/{build.folder}"]


def reachable_build(machine: Machine, cpu: bool) -> Build:
    """The build that fits, or the plain pin at once where torch's own index does not answer."""
    build = choose_build(machine, cpu)
    print(f"torch: the {build.folder or 'standard'} build, as {build.reason}.")
    if not build.folder or index_answers(build.folder):
        return build
    print("torch's own index does not answer: taking the plain version from pip's index instead.")
    if warning := plain_pin_warning(machine, build):
        print(warning)
    return Build("", "torch's own index does not answer")


def this_machine() -> Machine:
    """Looks at the machine without torch."""
    card = card_from_driver() or card_from_nvidia_smi() or amd_card() or NO_CARD
    return Machine(platform.system(), platform.machine(), card)


def card_from_driver() -> Card | None:
    """The fastest NVIDIA card as the CUDA driver's library tells it, or None."""
    try:
        driver = ctypes.CDLL("nvcuda.dll" if os.name == "nt" else "libcuda.so.1")
    except OSError:
        return None
    count, cuda, device, major, minor = (ctypes.c_int() for _ in range(5))
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
        return None
    driver.cuDriverGetVersion(ctypes.byref(cuda))
    driver.cuDeviceGet(ctypes.byref(device), 0)
    # 75 and 76: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR in cuda.h.
    driver.cuDeviceGetAttribute(ctypes.byref(major), 75, device)
    driver.cuDeviceGetAttribute(ctypes.byref(minor), 76, device)
    return Card("nvidia", cuda.value, (major.value, minor.value))


def card_from_nvidia_smi() -> Card | None:
    """The NVIDIA card of the newest generation as nvidia-smi tells it, or None."""
    command = ["nvidia-smi", "--query-gpu=driver_version,compute_cap", "--format=csv,noheader"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return read_nvidia_smi(answer.stdout)


def read_nvidia_smi(answer: str) -> Card | None:
    """Reads lines such as "580.65.06, 9.0"; driver 580 brought CUDA 13, and 525 CUDA 12."""
    rows = re.findall(r"^(\d+)\.[\d.]+, (\d+)\.(\d+)\s*$", answer, re.MULTILINE)
    cards = [
        Card(
            "nvidia",
            13000 if int(driver) >= 580 else 12000 if int(driver) >= 525 else 11000,
            (int(major), int(minor)),
        )
        for driver, major, minor in rows
    ]
    return max(cards, key=lambda card: card.capability, default=None)


def amd_card(nodes: Path = Path("/sys/class/kfd/kfd/topology/nodes")) -> Card | None:
    """An AMD card as Linux's compute driver lists it, or None; processors have the id 0."""
    try:
        ids = [path.read_text().strip() for path in nodes.glob("*/gpu_id")]
    except OSError:
        return None
    return Card("amd") if any(number not in ("", "0") for number in ids) else None


def index_answers(folder: str, seconds: float = PROBE_SECONDS) -> bool:
    """Whether torch's own index answers in time, through the proxy and certificates pip uses."""
    import http.client
    import ssl
    import urllib.request

    answers = []

    def ask() -> None:
        request = urllib.request.Request(f"{TORCH_INDEX}/{folder}/torch/", method="HEAD")
        try:
            context = ssl.create_default_context(cafile=os.environ.get("PIP_CERT"))
            with urllib.request.urlopen(request, timeout=seconds, context=context) as reply:
                answers.append(reply.status)
        except (OSError, ValueError, http.client.HTTPException):
            pass

    # The time-out counts for one address at a time and not for names: the thread bounds it all.
    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(seconds)
    return bool(answers)
