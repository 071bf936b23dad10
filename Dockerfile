# A broker in a container: docker build -t kavka . && docker run -p 9092:9092 kavka      (docs/operations.md, "In containers")
# Settings are variables (KAFKA_ZOOKEEPER_CONNECT is zookeeper.connect) or a file mounted over /etc/kavka/server.properties.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS build
WORKDIR /source
COPY . .
# The broker alone, with its bytecode: what installs it stays behind.
RUN python3 -m venv /opt/kavka \
    && /opt/kavka/bin/python -m pip install --no-cache-dir --disable-pip-version-check . \
    && /opt/kavka/bin/python -m pip uninstall --yes --quiet setuptools pip
RUN sed 's|^log.dirs=.*|log.dirs=/var/lib/kavka|' config/server.properties > server.properties

FROM python:${PYTHON}-slim-bookworm
RUN groupadd --gid 1000 kavka \
    && useradd --uid 1000 --gid kavka --no-create-home --home-dir /var/lib/kavka --shell /usr/sbin/nologin kavka \
    && install -d -o kavka -g kavka /var/lib/kavka
COPY --from=build /opt/kavka /opt/kavka
COPY --from=build /source/server.properties /etc/kavka/server.properties
ENV PATH=/opt/kavka/bin:$PATH \
    KAFKA_METRICS_PORT=9404
USER kavka
VOLUME /var/lib/kavka
EXPOSE 9092 9404
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5m \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(f'http://localhost:{os.environ[\"KAFKA_METRICS_PORT\"]}/readyz', timeout=4)"]
# The broker itself is process 1, so that signals reach it: a stop in order takes what docs/operations.md says.
ENTRYPOINT ["kavka"]
CMD ["broker", "/etc/kavka/server.properties"]
