/** Environment of the runtime: variables of the process, then those of the managed file. */
export interface ConfigEnvironment {
  /** Returns the unchanged value of a variable, which may be empty. */
  get(name: string): string | undefined
  /** Build information for `/version`. */
  readonly app: { version?: string; commit?: string; buildTime?: string }
  readonly ollamaBaseUrl?: string
  readonly docling: { url?: string; timeoutMs?: number }
  /** Log level from `WB_LOG`, otherwise `LOG_LEVEL`, in lower case, with the name of the variable. */
  readonly log?: { level: string; name: 'WB_LOG' | 'LOG_LEVEL' }
}

/** @param managed  variables that apply if `variables` does not set them */
export function createEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
  managed: ReadonlyMap<string, string> = new Map(),
): ConfigEnvironment {
  const known = new Map(managed)
  for (const [name, value] of Object.entries(variables)) if (value !== undefined) known.set(name, value)
  const filled = (name: string) => known.get(name)?.trim() || undefined
  return {
    get: name => known.get(name),
    app: {
      version: filled('APP_VERSION'),
      commit: filled('APP_COMMIT'),
      buildTime: filled('APP_BUILD_TIME'),
    },
    ollamaBaseUrl: filled('OLLAMA_BASE_URL'),
    docling: { url: filled('DOCLING_URL'), timeoutMs: positiveNumber(filled('DOCLING_TIMEOUT_MS')) },
    log: logLevelVariable(filled),
  }
}

function positiveNumber(text: string | undefined): number | undefined {
  const value = Number(text)
  return Number.isInteger(value) && value > 0 ? value : undefined
}

function logLevelVariable(filled: (name: string) => string | undefined): ConfigEnvironment['log'] {
  for (const name of ['WB_LOG', 'LOG_LEVEL'] as const) {
    const level = filled(name)
    if (level) return { level: level.toLowerCase(), name }
  }
  return undefined
}
