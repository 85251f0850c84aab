export function headersBeside(binary: string, modules: string): string | undefined
