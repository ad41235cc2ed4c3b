/** An error the gateway answered with, or `UNREACHABLE` where it could not be asked. */
export class AgentGateError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly details: unknown;

  constructor(code: string, message: string, retryable = false, details: unknown = undefined) {
    super(message);
    this.name = "AgentGateError";
    this.code = code;
    this.retryable = retryable;
    this.details = details;
  }
}

/** What can be said about one call beside its arguments. */
export interface CallOptions {
  /** Stops waiting; a call that still waits for a person is withdrawn. */
  signal?: AbortSignal;
  /** Two calls with one key run once. */
  idempotencyKey?: string;
}

// Short, because a call can be withdrawn, or found again after a restart, only once its id is known.
const FIRST_WAIT_SECONDS = 1;
const WAIT_SECONDS = 50;
const POLL_PATIENCE_MS = 60_000;

interface Answer {
  call?: string;
  status?: string;
  data?: unknown;
  error?: { code?: string; message?: string; retryable?: boolean; details?: unknown };
}

interface Surroundings {
  Deno?: { env: { get(name: string): string | undefined } };
  process?: { env: Record<string, string | undefined> };
}

function variable(name: string): string | undefined {
  const here = globalThis as unknown as Surroundings;
  try {
    return here.Deno ? here.Deno.env.get(name) : here.process?.env[name];
  } catch {
    return undefined; // Deno without --allow-env for this name
  }
}

function gateway(): string {
  const url = variable("AGENT_GATE_URL") || variable("TOOLSCRIPT_GATEWAY_URL");
  if (!url) {
    throw new AgentGateError(
      "UNREACHABLE",
      "Neither AGENT_GATE_URL nor TOOLSCRIPT_GATEWAY_URL is set (or readable). " +
        "Set AGENT_GATE_URL to the gateway's address, such as http://127.0.0.1:8443; in Deno, allow it with --allow-env.",
    );
  }
  return url.replace(/^ws/i, "http").replace(/\/+$/, "").replace(/\/(mcp|ws)$/, "");
}

function headers(more: Record<string, string>): Record<string, string> {
  const token = variable("AGENT_TOKEN");
  return token ? { Authorization: `Bearer ${token}`, ...more } : more;
}

async function request(url: string, init: RequestInit): Promise<Response> {
  try {
    return await fetch(url, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new AgentGateError("UNREACHABLE", `The gateway at ${new URL(url).origin} cannot be reached: ${reason}`, true);
  }
}

async function read(response: Response): Promise<Answer> {
  const text = await response.text();
  let answer: Answer;
  try {
    answer = JSON.parse(text) as Answer;
  } catch {
    throw new AgentGateError("INTERNAL", `The gateway answered ${response.status} without JSON: ${text.slice(0, 200)}`);
  }
  if (!response.ok || answer.error) {
    const { code = "INTERNAL", message = `The gateway answered ${response.status}`, retryable, details } = answer.error ?? {};
    throw new AgentGateError(code, message, retryable, details);
  }
  return answer;
}

/** Asks for a pending call until it has ended; a gateway that restarts meanwhile is waited for. */
async function settled(base: string, id: string, signal: AbortSignal | undefined): Promise<Answer> {
  const url = calls(base, id);
  let giveUpAt = Date.now() + POLL_PATIENCE_MS;
  for (;;) {
    try {
      const answer = await read(await request(`${url}?wait=${WAIT_SECONDS}`, { headers: headers({}), signal: signal ?? null }));
      if (answer.status !== "pending") return answer;
      giveUpAt = Date.now() + POLL_PATIENCE_MS;
    } catch (error) {
      if (signal?.aborted) await withdraw(url);
      const gone = error instanceof AgentGateError && error.code === "UNREACHABLE" && Date.now() < giveUpAt;
      if (!gone || signal?.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

/** Sends the call. Where the script stops waiting before the gateway has named it, it is withdrawn as soon as it has. */
async function sent(base: string, url: string, init: RequestInit, signal: AbortSignal | undefined): Promise<Answer> {
  signal?.throwIfAborted();
  const first = request(url, init).then(read);
  if (!signal) return first;
  let stop = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    stop = () => {
      reject(signal.reason);
      first.then((answer) => (answer.status === "pending" && answer.call ? withdraw(calls(base, answer.call)) : undefined), () => undefined);
    };
    signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([first, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

function calls(base: string, id: string): string {
  return `${base}/api/calls/${encodeURIComponent(id)}`;
}

async function withdraw(url: string): Promise<void> {
  try {
    await fetch(url, { method: "DELETE", headers: headers({}) });
  } catch {
    // The gateway is gone; the question expires there by itself.
  }
}

function parsed(data: unknown): unknown {
  if (typeof data !== "string" || !/^\s*[[{]/.test(data)) return data;
  try {
    return JSON.parse(data);
  } catch {
    return data;
  }
}

/** Calls any tool by the name the gateway gives it, such as `github__create_issue`. */
export async function callTool(tool: string, args: unknown = {}, options: CallOptions = {}): Promise<unknown> {
  const base = gateway();
  const more: Record<string, string> = { "Content-Type": "application/json", Prefer: `wait=${FIRST_WAIT_SECONDS}` };
  if (options.idempotencyKey) more["Idempotency-Key"] = options.idempotencyKey;
  const init = { method: "POST", headers: headers(more), body: JSON.stringify(args) };
  const first = await sent(base, `${base}/api/tools/${encodeURIComponent(tool)}`, init, options.signal);
  const answer = first.status === "pending" && first.call ? await settled(base, first.call, options.signal) : first;
  return answer.data;
}

async function callText(tool: string, args: unknown, options?: CallOptions): Promise<unknown> {
  return parsed(await callTool(tool, args, options));
}
