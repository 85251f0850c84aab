// Its own types bring those of browsers with them; those of `grammars.d.ts` stand for them.
export { common, createLowlight } from 'lowlight'
