export { askInTerminal } from './ask-in-terminal.ts'
export { chatInLines } from './chat-in-lines.ts'
export { chatInTerminal } from './chat-in-terminal.tsx'
