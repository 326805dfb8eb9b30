"""`make containers`: deploy/compose.yaml in real containers, without a registry of images.

The base images are stand-ins from Debian's packages under the names that the files use. See docs/adr/0176.
"""
