/** Folders that one running cluster has to itself: that of its kubeconfig, and that of its data (page.md 3). */
import { link, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { kill, pid as ownPid } from 'node:process'

/** A folder that is taken until it is released. */
export interface TakenFolder {
  readonly path: string
  /** ID of the process that has the folder one would have taken first. */
  readonly besides?: number
  release(): Promise<void>
}

const lockName = 'lock'

/** Takes `.tenon` in the working directory, or the first free one of `.tenon/2`, `.tenon/3` and so on. */
export async function takeClusterFolder(cwd: string): Promise<TakenFolder> {
  const first = join(cwd, '.tenon')
  let besides: number | undefined
  for (let number = 1; ; number++) {
    const path = number === 1 ? first : join(first, String(number))
    const holder = await take(path)
    if (holder === undefined) return { ...taken(path), ...(besides !== undefined && { besides }) }
    besides ??= holder
  }
}

/** @returns the folder, or the ID of the process that has it. */
export async function takeFolder(path: string): Promise<TakenFolder | number> {
  return (await take(path)) ?? taken(path)
}

function taken(path: string): TakenFolder {
  return { path, release: () => rm(join(path, lockName), { force: true }) }
}

/** @returns the ID of the running process that has the folder; undefined once this one has it. */
async function take(path: string): Promise<number | undefined> {
  const lock = join(path, lockName)
  await mkdir(path, { recursive: true, mode: 0o700 })
  // Written before it gets its name: nobody sees a lock without an ID.
  const written = `${lock}-${ownPid}`
  await writeFile(written, String(ownPid))
  try {
    for (;;) {
      if (await isLinked(written, lock)) return undefined
      const holder = Number(await readFile(lock, 'utf8').catch(() => ''))
      if (isRunning(holder)) return holder
      // Left by a process that was killed.
      await rm(lock, { force: true })
    }
  } finally {
    await rm(written, { force: true })
  }
}

/** @returns false if there is such a file already. */
async function isLinked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Another process may have got the ID of a killed one: then a free folder is not used, which harms nobody. */
function isRunning(pid: number): boolean {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === ownPid) return false
  try {
    return kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}
