/** Constants of this machine, and of the Node.js that runs the program. */
export const hostFacts = {
  platform: process.platform,
  architecture: process.arch,
  nodeVersion: process.versions.node,
  /** Version of Node-API. */
  napiVersion: Number(process.versions.napi),
  /** Absolute path of Node.js. */
  nodePath: process.execPath,
  pid: process.pid,
  /** Undefined on Windows. */
  uid: process.getuid?.(),
} as const
