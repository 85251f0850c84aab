import { once } from '../base/once.ts'

/*
 * The only bridge from the command line to the server's half, which is loaded at the first call. Finding a running server
 * loads the locks alone.
 */

export type { Found } from '../config/find.ts'
export type { FolderFiles, Survey } from '../config/folder.ts'
export type { Examined, LocalConfig, Store, Voice } from '../embedded.ts'
export type { Listening } from '../http/listen.ts'
export type { Announcement } from '../locks/server-lock.ts'
export type { Served } from '../rescue.ts'
export type { Runtime } from '../runtime.ts'
export type { Readable } from '../storage/sqlite/check.ts'

type Lazy<F> = F extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never

/** Returns a function of a module that is loaded at the first call. */
function lazily<M, K extends keyof M>(load: () => Promise<M>, name: K): Lazy<M[K]> {
  const call = async (...args: unknown[]) =>
    ((await load())[name] as (...args: unknown[]) => unknown)(...args)
  return call as Lazy<M[K]>
}

const embedded = once(() => import('../embedded.ts'))
const serverLock = once(() => import('../locks/server-lock.ts'))

export const findLocalServer = lazily(serverLock, 'findServer')
export const lockDataDir = lazily(serverLock, 'takeServerLock')

export const locateConfig = lazily(embedded, 'locateConfig')
export const readConfig = lazily(embedded, 'readConfig')
export const secretProblems = lazily(embedded, 'secretProblems')
export const surveyFolder = lazily(embedded, 'surveyFolder')
export const readProjectFile = lazily(embedded, 'readProjectFile')
export const anonymousPass = lazily(embedded, 'anonymousPass')
export const hasNoStore = lazily(embedded, 'hasNoStore')
export const holdsNothing = lazily(embedded, 'holdsNothing')
export const openLocal = lazily(embedded, 'openLocal')
export const openServed = lazily(embedded, 'openServed')
export const openPort = lazily(embedded, 'openPort')
export const examine = lazily(embedded, 'examine')
export const chatProviderProbed = lazily(embedded, 'chatProviderProbed')
export const identityProvider = lazily(embedded, 'identityProvider')

/** Like `alone` of the locks. */
export async function alone<T>(lockPath: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const locks = await import('../locks/exclusive-lock.ts')
  return locks.alone(lockPath, signal, work)
}
