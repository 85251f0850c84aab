import { basename, resolve } from 'node:path'
import type { Clock } from '../base/clock.ts'
import { type LocalModel, LocalModelError } from './local-model.ts'
import { ModelStore } from './model-store.ts'

/** Result of a command, or the reason why it failed. */
export type LocalModelResult = { model: LocalModel } | { failure: { message: string; hint?: string } }

/**
 * Adds a model to a data directory.
 *
 * @param source  absolute path of a folder with the model
 * @param name    by default the name of the folder
 */
export async function addLocalModel(
  dataDir: string,
  source: string,
  { name, clock }: { name: string | undefined; clock: Clock },
): Promise<LocalModelResult> {
  try {
    return {
      model: await new ModelStore(dataDir).add(source, name ?? basename(resolve(source)), { clock }),
    }
  } catch (error) {
    if (!(error instanceof LocalModelError)) throw error
    return { failure: { message: error.message, ...(error.hint && { hint: error.hint }) } }
  }
}

/** Returns the models of a data directory by name. */
export function listLocalModels(dataDir: string): LocalModel[] {
  return new ModelStore(dataDir).list()
}

/** Deletes a model. Returns false if it does not exist. */
export function removeLocalModel(dataDir: string, name: string): boolean {
  return new ModelStore(dataDir).remove(name)
}
