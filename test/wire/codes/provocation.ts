import type { ErrorCode } from '../../../src/contract/errors.ts'
import type { TestResponse } from '../../harness/runtime.ts'

/** Makes a runtime respond with an error code, and returns the response. */
export type Provocation = () => Promise<TestResponse>

export type Provocations = Partial<Record<ErrorCode, Provocation>>
