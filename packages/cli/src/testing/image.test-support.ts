/** The Dockerfile read and carried out without Docker, as far as that goes. */
import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rename, symlink } from 'node:fs/promises'
import { join, matchesGlob, relative, resolve } from 'node:path'
import { promisify } from 'node:util'
import { dockerStages, imageRecipe, type Instruction } from '../../../../release/dockerfile.ts'

const run = promisify(execFile)
export const repositoryRoot: string = resolve(import.meta.dirname, '../../../..')

/** Sources and destination of a `COPY` from the build context. */
function copied(text: string): { readonly sources: readonly string[]; readonly to: string } {
  const words = text.split(/ +/)
  return { sources: words.slice(0, -1), to: words.at(-1) ?? '' }
}

/** What a stage copies from the build context. */
export function copiesFromContext(stage: readonly Instruction[]): readonly ReturnType<typeof copied>[] {
  return stage
    .filter(({ name, text }) => name === 'COPY' && !text.startsWith('--from='))
    .map(({ text }) => copied(text))
}

/** Whether `.dockerignore` keeps a path out of the build context: the last pattern that matches decides. */
export function contextFilter(patterns: readonly string[]): (path: string) => boolean {
  // For Docker a leading dot is a letter like any other.
  const plain = (text: string) => text.replaceAll(/(?<=^|\/)\./g, '_')
  return (path) => {
    let isOut = false
    for (const pattern of patterns) {
      const bare = plain(pattern.replace(/^!/, ''))
      const parts = plain(path).split('/')
      const hits = parts.some((_, index) => matchesGlob(parts.slice(0, index + 1).join('/'), bare))
      if (hits) isOut = !pattern.startsWith('!')
    }
    return isOut
  }
}

export async function ignorePatterns(): Promise<readonly string[]> {
  const text = await readFile(join(repositoryRoot, '.dockerignore'), 'utf8')
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
}

/**
 * Carries out the build stage in `folder`: what is copied, and the bundle. In place of `npm ci`, which
 * would fetch everything again, the packages installed here are linked, and the workspaces as npm links them.
 * @returns the folder that the image gets.
 */
export async function replayBuild(folder: string): Promise<string> {
  const [, , build = []] = dockerStages()
  const isIgnored = contextFilter(await ignorePatterns())
  const source = join(folder, 'src')
  for (const { sources, to } of copiesFromContext(build)) {
    for (const each of sources) {
      const target = to.endsWith('/') ? join(source, to, each.split('/').at(-1) ?? '') : join(source, to)
      await cp(join(repositoryRoot, each), target, {
        recursive: true,
        filter: (path) => !isIgnored(relative(repositoryRoot, path)),
      })
    }
  }
  await linkPackages(source)
  const bundle = imageRecipe().commands.find(([script]) => script === 'build/bundle.ts') ?? []
  await run(process.execPath, bundle, { cwd: source })
  const image = join(folder, 'out')
  await rename(join(source, bundle.at(-1) ?? ''), image)
  return image
}

async function linkPackages(source: string): Promise<void> {
  const installed = join(repositoryRoot, 'node_modules')
  const modules = join(source, 'node_modules')
  await mkdir(join(modules, '@tenon'), { recursive: true })
  for (const name of await readdir(installed))
    if (name !== '@tenon') await symlink(join(installed, name), join(modules, name))
  for (const name of await readdir(join(source, 'packages')))
    await symlink(join('../../packages', name), join(modules, '@tenon', name))
  for (const name of await readdir(join(source, 'simulators')))
    await symlink(join('../../simulators', name), join(modules, '@tenon', `simulator-${name}`))
}
