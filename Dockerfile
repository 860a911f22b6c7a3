# Dragoman in a container: `docker build --tag dragoman .`, then `docker run --rm dragoman demo`.
#
# For NVIDIA GPUs, whose libraries come with torch, so that a small base is enough:
#
#   docker build --tag dragoman:cuda --build-arg BASE=nvidia/cuda:13.0.2-base-ubuntu24.04 \
#     --build-arg TORCH_INDEX=https://pypi.org/simple .

ARG BASE=python:3.11-slim-bookworm
FROM ${BASE}

# Where torch comes from, beside the package index: this one has builds for CPUs, which are preferred
# (2.13.0+cpu is taken for newer than 2.13.0) and far smaller than those for GPUs.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu

# ssh is for `--hosts`. Releases of Debian and Ubuntu have other versions of these packages.
# hadolint ignore=DL3008
RUN apt-get update \
  && apt-get install --yes --no-install-recommends openssh-client \
  && { command -v python3 >/dev/null \
    || apt-get install --yes --no-install-recommends python3 python3-venv; } \
  && rm -rf /var/lib/apt/lists/* \
  && useradd --create-home --uid 10001 dragoman \
  && install --directory --owner dragoman /work \
  && python3 -m venv /opt/dragoman
ENV PATH=/opt/dragoman/bin:$PATH

# torch first: its layer is the largest and stays the same while the code changes.
WORKDIR /build
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt --extra-index-url "${TORCH_INDEX}" torch
COPY pyproject.toml README.md LICENSE ./
COPY recipes recipes
COPY src src
RUN pip install --no-cache-dir --constraint constraints.txt '.[serve,tensorboard]'

# Runs and prepared data are written here: mount a folder or a volume.
WORKDIR /work
# By number: Kubernetes refuses to take a name for somebody else than root.
USER 10001
ENTRYPOINT ["dragoman"]
CMD ["--help"]
