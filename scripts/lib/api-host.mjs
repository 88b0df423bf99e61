// The hosts that serve lock and control routes in a local run: the configured ones and this machine.

export const localApiHost = (configured = "api.swarmvia.cloud") => `${configured},localhost,127.0.0.1`;
