export { askInTerminal } from './ask.ts'
export { chatInLines } from './lines.ts'
export { chatInTerminal } from './terminal.tsx'
