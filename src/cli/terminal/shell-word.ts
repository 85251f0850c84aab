export { shellWord } from '../../base/shell-word.ts'
