// Vitest evaluates this file again for each test file, but loads the module only once.
import './volatile-stores.ts'
