import { once } from '../base/once.ts'

/*
 * The only bridge from the command line to the server's half, which is loaded at the first call. Finding a running server
 * loads the locks alone.
 */

export type { ConfigFile } from '../config/find-config.ts'
export type { FolderFiles, FolderSurvey } from '../config/survey-folder.ts'
export type {
  DataDirReport as Examined,
  LocalConfig,
  LogSettings as Voice,
  StoreChoice as Store,
} from '../embedded.ts'
export type { RunningServer } from '../http/listen.ts'
export type { Announcement } from '../locks/server-lock.ts'
export type { ServerRuntime } from '../rescue.ts'
export type { Runtime } from '../runtime.ts'
export type { ReadableTable } from '../storage/sqlite/check.ts'

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
export const anonymousPass = lazily(embedded, 'acceptsAnonymous')
export const hasNoStore = lazily(embedded, 'hasNoStore')
export const holdsNothing = lazily(embedded, 'isStoreEmpty')
export const openLocal = lazily(embedded, 'openLocal')
export const openServed = lazily(embedded, 'openServed')
export const openPort = lazily(embedded, 'serveRuntime')
export const examine = lazily(embedded, 'checkDataDir')
export const chatProviderProbed = lazily(embedded, 'probeConfiguredChat')
export const identityProvider = lazily(embedded, 'configuredIdentityProvider')

/** Like `alone` of the locks. */
export async function alone<T>(lockPath: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  const locks = await import('../locks/exclusive-lock.ts')
  return locks.runExclusively(lockPath, signal, work)
}
