"""Lists the licences of what Forewarn needs to run; ends with 1 if one is a GPL or unknown.

`make licences` runs it in `.venv`. Tools for building, testing and checking are not among them.
"""

import importlib.metadata as metadata
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

from packaging.requirements import Requirement

# Our packages, and the run-time part of requirements/ros-wheels.txt.
ROOTS = (
    "forewarn",
    "forewarn_ros",
    "monitor_node",
    "apollo_bridge",
    "forewarn_agent_guard",
    "ros-rclpy",
    "ros-rmw-fastrtps-cpp",
    "ros-common-interfaces",
    "ros-ament-index-python",
)
# The exception lets what is compiled with GCC, or linked to its libraries, have any licence.
EXEMPT = re.compile(r"GPL-[\w.-]+ WITH GCC-exception-[\d.]+", re.IGNORECASE)
GPL = re.compile(r"\bA?GPL|GNU (Affero )?General Public", re.IGNORECASE)

TEXTS = {
    "Apache-2.0": "Apache License\n                           Version 2.0",
    "MIT": "Permission is hereby granted, free of charge, to any person",
    "GPL": "GNU GENERAL PUBLIC LICENSE",
}


def main():
    """Print name, version and licence of each package; tell what is not acceptable."""
    wrong = []
    for name, package in sorted(closure(ROOTS).items()):
        licence = licence_of(package)
        print(f"{name:<44} {package.version:<12} {licence or 'unknown'}")
        if not licence or is_gpl(licence):
            wrong.append(f"{name} ({licence or 'unknown'})")
    if wrong:
        print(f"licences: error: {', '.join(wrong)}: neither a GPL nor unknown", file=sys.stderr)
    return 1 if wrong else 0


def closure(roots):
    """Installed distributions that the roots need on this interpreter, by normal name."""
    found, waiting = {}, list(roots)
    while waiting:
        name = waiting.pop()
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in found:
            continue
        found[key] = metadata.distribution(name)
        for text in found[key].requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting.append(requirement.name)
    return found


def licence_of(package):
    """Licence that a package states: in its metadata, in package.xml, or as a text of its own."""
    about = package.metadata
    classifiers = [c for c in about.get_all("Classifier") or () if c.startswith("License ::")]
    stated = about.get("License") or ""
    return (
        about.get("License-Expression")
        or " AND ".join(c.rpartition(" :: ")[2] for c in classifiers)
        or (stated if len(stated) < 80 and stated != "UNKNOWN" else "")
        or " AND ".join(_of_manifest(package) or _of_text(package))
    )


def _of_manifest(package):
    """Licences in the package.xml that a wheel of ROS 2 installs, for their metadata has none."""
    share = re.compile(r"(\.\./)*share/[^/]+/package\.xml\Z")
    for file in package.files or ():
        if share.search(str(file).replace("\\", "/")):
            tree = ET.parse(Path(package.locate_file(file)))
            return [(item.text or "").strip() for item in tree.getroot().iter("license")]
    return []


def _of_text(package):
    """Licences whose texts a package ships, told by words that only they have."""
    names = package.metadata.get_all("License-File") or ()
    texts = [str(package.read_text(f"licenses/{name}") or "") for name in names]
    return [title for title, words in TEXTS.items() if any(words in text for text in texts)]


def is_gpl(licence):
    """Tell whether all that one may choose from is a GPL."""
    choices = re.split(r"\s+OR\s+", EXEMPT.sub("", licence))
    return all(GPL.search(choice) for choice in choices)


if __name__ == "__main__":
    sys.exit(main())
