/** An argument that names pages or files that are not in a local folder. */
export type SourceArgument =
  | { readonly kind: 'page'; readonly url: string }
  | { readonly kind: 'repository'; readonly url: string; readonly ref: string | undefined }
  | { readonly kind: 'archive'; readonly location: URL | string }

/** Names of archives that are read like a folder. */
const archiveName = /\.(?:tar|tar\.gz|tgz)$/i
/** `user@host:path`, as in `git@github.com:owner/project.git`. */
const scpAddress = /^\w[\w.-]*@\w[\w.-]*:(?!\/\/)./

/** Returns what an argument names; undefined for a local file or folder, a glob, or `-`. */
export function parseSourceArgument(argument: string): SourceArgument | undefined {
  if (scpAddress.test(argument)) return repository(argument)
  if (!/^[a-z][a-z0-9+.-]+:\/\//i.test(argument) || !URL.canParse(argument))
    return archiveName.test(argument) ? { kind: 'archive', location: argument } : undefined
  const { protocol, pathname } = new URL(argument)
  if (protocol.startsWith('git+')) return repository(argument.slice('git+'.length))
  if (['ssh:', 'git:', 'file:'].includes(protocol) || /\.git\/?$/.test(pathname)) return repository(argument)
  if (archiveName.test(pathname)) return { kind: 'archive', location: new URL(argument) }
  return { kind: 'page', url: argument }
}

/** Splits the branch or tag from the URL of a repository: `https://example.com/docs.git#v2`. */
function repository(address: string): SourceArgument {
  const at = address.indexOf('#')
  if (at === -1) return { kind: 'repository', url: address, ref: undefined }
  return { kind: 'repository', url: address.slice(0, at), ref: address.slice(at + 1) }
}
