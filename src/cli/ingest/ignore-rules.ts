import { lstat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { readText } from './read-text.ts'

const fileName = '.gitignore'

/**
 * Rules of the `.gitignore` files in a folder and above it. The deepest file with a matching rule decides.
 *
 * @see https://git-scm.com/docs/gitignore
 */
export class IgnoreRules {
  private constructor(
    private readonly folder: string,
    private readonly matcher: Ignore | undefined,
    private readonly outer: IgnoreRules | undefined,
  ) {}

  /** Rules that ignore no files. */
  static readonly none = new IgnoreRules('/', undefined, undefined)

  /**
   * Returns the rules for a folder that the user named. They include those of the enclosing repository,
   * unless these ignore the folder itself.
   */
  static async around(folder: string): Promise<IgnoreRules> {
    const inside = resolve(folder)
    const root = await findRepository(inside)
    if (root === undefined || root === inside) return IgnoreRules.none.within(inside)
    const steps = relative(root, inside).split(sep)
    let rules = await IgnoreRules.none.within(root)
    for (const [index] of steps.entries()) {
      const next = join(root, ...steps.slice(0, index + 1))
      if (rules.ignores(next, true)) return IgnoreRules.none.within(inside)
      rules = await rules.within(next)
    }
    return rules
  }

  /** Returns these rules and those of a subfolder. */
  async within(folder: string): Promise<IgnoreRules> {
    const inside = resolve(folder)
    const reading = await readText(join(inside, fileName), { follow: false })
    return 'text' in reading ? new IgnoreRules(inside, ignore().add(reading.text), this) : this
  }

  ignores(path: string, isFolder: boolean): boolean {
    if (!this.matcher) return false
    const below = relative(this.folder, resolve(path)).split(sep).join('/')
    const { ignored, unignored } = this.matcher.test(isFolder ? `${below}/` : below)
    return ignored || unignored ? ignored : (this.outer?.ignores(path, isFolder) ?? false)
  }
}

async function findRepository(folder: string): Promise<string | undefined> {
  const inside = await lstat(join(folder, '.git')).catch(() => undefined)
  if (inside) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : findRepository(parent)
}
