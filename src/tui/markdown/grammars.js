// The types of lowlight need browser types, so `grammars.d.ts` declares the parts that are used here.
export { common, createLowlight } from 'lowlight'
