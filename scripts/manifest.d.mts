export function manifestText(): Promise<string>
export function committedManifest(): string
