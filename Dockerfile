FROM python:3.13-slim AS build
WORKDIR /src
# requirements-postgres.lock for a gateway whose store is PostgreSQL.
ARG LOCK=requirements.lock
COPY requirements.lock requirements-postgres.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/agent-gate && /opt/agent-gate/bin/pip install --no-cache-dir --require-hashes -r ${LOCK}
COPY src ./src
COPY ui ./ui
RUN /opt/agent-gate/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home --home-dir /data gate && mkdir /config && chown gate /config
COPY --from=build /opt/agent-gate /opt/agent-gate
ENV PATH=/opt/agent-gate/bin:$PATH
USER gate
WORKDIR /
VOLUME ["/config", "/data"]
EXPOSE 8443 3100
HEALTHCHECK --interval=30s --timeout=3s CMD ["python", "-c", "import ssl,urllib.request as u; u.urlopen('https://127.0.0.1:8443/health', context=ssl._create_unverified_context(), timeout=2)"]
ENTRYPOINT ["agent-gate"]
CMD ["serve", "--config", "/config/config.yaml", "--host", "0.0.0.0", "--data", "/data", "--admin-host", "0.0.0.0", "--admin-port", "3100"]
