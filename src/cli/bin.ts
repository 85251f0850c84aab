/* The parts of the command line that bin/ starts, as one file of the build: each file costs time at startup. */
export { main } from './main.ts'
export { nodeIo } from './node-io.ts'
