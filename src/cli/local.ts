import { once } from '../base/once.ts'

/*
 * The only module of the command line that imports the runtime. The runtime is loaded at the first call of a function. To
 * find a running server, only the locks are loaded.
 */

export type { DataDirBackup } from '../backup/create-backup.ts'
export type { RestoredDataDir } from '../backup/restore-backup.ts'
export type { ConfigFile } from '../config/find-config.ts'
export type { FolderFiles, FolderSurvey } from '../config/survey-folder.ts'
export type { DrillReport } from '../drill/drill-report.ts'
export type {
  AccessCaseReport,
  DataDirReport,
  LocalConfig,
  LocalFileReader,
  LocalText,
  LogSettings,
  StoreChoice,
} from '../embedded.ts'
export type { RunningServer } from '../http/listen.ts'
export type { Announcement } from '../locks/server-lock.ts'
export type { OutboundResponse } from '../models/outbound.ts'
export type { PageNetwork } from '../models/page-network.ts'
export type { ServerRuntime } from '../rescue.ts'
export type { Runtime } from '../runtime.ts'
export type { ReadableTable } from '../storage/storage-driver.ts'

type Lazy<F> = F extends (...args: infer A) => infer R ? (...args: A) => Promise<Awaited<R>> : never

/** Returns a function that loads a module at the first call, and then calls the module's function with this name. */
function lazily<M, K extends keyof M>(load: () => Promise<M>, name: K): Lazy<M[K]> {
  const call = async (...args: unknown[]) =>
    ((await load())[name] as (...args: unknown[]) => unknown)(...args)
  return call as Lazy<M[K]>
}

const embedded = once(() => import('../embedded.ts'))
const localModels = once(() => import('../local-models/commands.ts'))
const pageNetwork = once(() => import('../models/page-network.ts'))
const serverLock = once(() => import('../locks/server-lock.ts'))

export const findLocalServer = lazily(serverLock, 'findServer')
export const lockDataDir = lazily(serverLock, 'acquireServerLock')

export const locateConfig = lazily(embedded, 'locateConfig')
export const readConfig = lazily(embedded, 'readConfig')
export const secretProblems = lazily(embedded, 'secretProblems')
export const surveyFolder = lazily(embedded, 'surveyFolder')
export const readProjectFile = lazily(embedded, 'readProjectFile')
export const acceptsAnonymous = lazily(embedded, 'acceptsAnonymous')
export const hasNoStore = lazily(embedded, 'hasNoStore')
export const isStoreEmpty = lazily(embedded, 'isStoreEmpty')
export const openLocal = lazily(embedded, 'openLocal')
export const openServed = lazily(embedded, 'openServed')
export const serveRuntime = lazily(embedded, 'serveRuntime')
export const drillAccess = lazily(embedded, 'drillAccess')
export const openFileReader = lazily(embedded, 'openFileReader')
export const openChunker = lazily(embedded, 'openChunker')
export const backUpDataDir = lazily(embedded, 'backUpDataDir')
export const restoreDataDir = lazily(embedded, 'restoreDataDir')
export const testAccessCases = lazily(embedded, 'testAccessCases')
export const checkDataDir = lazily(embedded, 'checkDataDir')
export const probeConfiguredChat = lazily(embedded, 'probeConfiguredChat')
export const configuredIdentityProvider = lazily(embedded, 'configuredIdentityProvider')

export const openPageNetwork = lazily(pageNetwork, 'openPageNetwork')

export const addLocalModel = lazily(localModels, 'addLocalModel')
export const listLocalModels = lazily(localModels, 'listLocalModels')
export const removeLocalModel = lazily(localModels, 'removeLocalModel')

/** Loads the locks module, and calls its `runExclusively`. */
export async function runExclusively<T>(
  lockPath: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const locks = await import('../locks/exclusive-lock.ts')
  return locks.runExclusively(lockPath, signal, work)
}
