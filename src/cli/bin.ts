/* Exports of the command line that bin/ uses. The build bundles them in one file, because each file costs time at startup. */
export { main } from './main.ts'
export { nodeIo } from './node-io.ts'
