import { lstat } from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import ignore, { type Ignore } from 'ignore'
import { readText } from './read-text.ts'

/** Later files take precedence. */
const fileNames = ['.gitignore', '.wbignore']

/**
 * Rules of the `.gitignore` and `.wbignore` files in a folder and its parent folders. If several files have a matching rule, the
 * deepest file takes precedence.
 *
 * @see https://git-scm.com/docs/gitignore
 */
export class IgnoreRules {
  private constructor(
    private readonly folder: string,
    private readonly matcher: Ignore | undefined,
    private readonly parent: IgnoreRules | undefined,
  ) {}

  /** Rules that ignore no files. */
  static readonly none = new IgnoreRules('/', undefined, undefined)

  /**
   * Loads the rules for a folder that is an argument. They include the rules of the enclosing repository, unless these
   * rules ignore the folder itself.
   */
  static async load(folder: string): Promise<IgnoreRules> {
    const target = resolve(folder)
    const root = await findRepository(target)
    if (root === undefined || root === target) return IgnoreRules.none.extend(target)
    const names = relative(root, target).split(sep)
    let rules = await IgnoreRules.none.extend(root)
    for (const [index] of names.entries()) {
      const subfolder = join(root, ...names.slice(0, index + 1))
      if (rules.ignores(subfolder, true)) return IgnoreRules.none.extend(target)
      rules = await rules.extend(subfolder)
    }
    return rules
  }

  /** Returns these rules together with those of a subfolder. */
  async extend(folder: string): Promise<IgnoreRules> {
    const path = resolve(folder)
    const files = await Promise.all(fileNames.map(name => readText(join(path, name), { follow: false })))
    const texts = files.flatMap(file => ('text' in file ? [file.text] : []))
    return texts.length > 0 ? new IgnoreRules(path, ignore().add(texts.join('\n')), this) : this
  }

  ignores(path: string, isFolder: boolean): boolean {
    if (!this.matcher) return false
    const relativePath = relative(this.folder, resolve(path)).split(sep).join('/')
    const { ignored, unignored } = this.matcher.test(isFolder ? `${relativePath}/` : relativePath)
    return ignored || unignored ? ignored : (this.parent?.ignores(path, isFolder) ?? false)
  }
}

async function findRepository(folder: string): Promise<string | undefined> {
  const gitFolder = await lstat(join(folder, '.git')).catch(() => undefined)
  if (gitFolder) return folder
  const parent = dirname(folder)
  return parent === folder ? undefined : findRepository(parent)
}
