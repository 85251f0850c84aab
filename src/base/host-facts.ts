/** Facts about this machine, this process and its version of Node.js. */
export const hostFacts = {
  platform: process.platform,
  architecture: process.arch,
  nodeVersion: process.versions.node,
  /** Version of Node-API. */
  napiVersion: Number(process.versions.napi),
  /** Absolute path of the Node.js executable. */
  nodePath: process.execPath,
  pid: process.pid,
  /** Undefined on Windows. */
  uid: process.getuid?.(),
} as const
