/** Variables of the process, and variables of the managed file that the process does not set. */
export interface ConfigEnvironment {
  /** Returns the value of a variable, untrimmed and possibly empty. */
  get(name: string): string | undefined
  /** Build information for `/version`. */
  readonly app: { version?: string; commit?: string; buildTime?: string }
  readonly ollamaBaseUrl?: string
  readonly docling: { url?: string; timeoutMs?: number }
  /** Log level in lowercase, from `WB_LOG` or, if that is not set, `LOG_LEVEL`; and the name of the variable. */
  readonly log?: { level: string; name: 'WB_LOG' | 'LOG_LEVEL' }
  /** Value of `WB_SEMANTIC_SEARCH`, in lowercase. */
  readonly semanticSearch?: string
}

/** Creates an environment. @param managed  variables that apply if `variables` does not set them */
export function createEnvironment(
  variables: Readonly<Record<string, string | undefined>>,
  managed: ReadonlyMap<string, string> = new Map(),
): ConfigEnvironment {
  const values = new Map(managed)
  for (const [name, value] of Object.entries(variables)) if (value !== undefined) values.set(name, value)
  const getTrimmed = (name: string) => values.get(name)?.trim() || undefined
  return {
    get: name => values.get(name),
    app: {
      version: getTrimmed('APP_VERSION'),
      commit: getTrimmed('APP_COMMIT'),
      buildTime: getTrimmed('APP_BUILD_TIME'),
    },
    ollamaBaseUrl: getTrimmed('OLLAMA_BASE_URL'),
    docling: {
      url: getTrimmed('DOCLING_URL'),
      timeoutMs: parsePositiveInteger(getTrimmed('DOCLING_TIMEOUT_MS')),
    },
    log: logLevelVariable(getTrimmed),
    semanticSearch: getTrimmed('WB_SEMANTIC_SEARCH')?.toLowerCase(),
  }
}

function parsePositiveInteger(text: string | undefined): number | undefined {
  const value = Number(text)
  return Number.isInteger(value) && value > 0 ? value : undefined
}

function logLevelVariable(getTrimmed: (name: string) => string | undefined): ConfigEnvironment['log'] {
  for (const name of ['WB_LOG', 'LOG_LEVEL'] as const) {
    const level = getTrimmed(name)
    if (level) return { level: level.toLowerCase(), name }
  }
  return undefined
}
