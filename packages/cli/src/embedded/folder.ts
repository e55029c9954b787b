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
  await writeFile(written, `${ownPid} ${(await startOf(ownPid)) ?? ''}`)
  try {
    for (;;) {
      if (await isLinked(written, lock)) return undefined
      const { text, holder } = await holderOf(lock)
      if (holder !== undefined) return holder
      await removeLeft(lock, text, written)
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

/** Who has written a file: nobody if that process has ended. */
async function holderOf(path: string): Promise<{ readonly text: string; readonly holder?: number }> {
  const text = await readFile(path, 'utf8').catch(() => '')
  const [pid = 0, start = 0] = text.split(' ').map(Number)
  return { text, ...((await isRunning(pid, start)) && { holder: pid }) }
}

/** Removes what a killed process left; one process at a time, as the next may have the folder already. */
async function removeLeft(lock: string, left: string, own: string): Promise<void> {
  const turn = `${lock}-turn`
  if (await isLinked(own, turn)) {
    if ((await holderOf(lock)).text === left) await rm(lock, { force: true })
    await rm(turn, { force: true })
    return
  }
  const other = await holderOf(turn)
  if (other.holder === undefined && other.text !== '') await rm(turn, { force: true })
}

/** @param start of the process that wrote the lock, as another may have its ID by now; 0 if that is not known. */
async function isRunning(pid: number, start: number): Promise<boolean> {
  if (!Number.isSafeInteger(pid) || pid <= 0 || pid === ownPid) return false
  try {
    kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return start === 0 || ((await startOf(pid)) ?? start) === start
}

/** When the process started, in ticks since the host did; undefined except on Linux. */
async function startOf(pid: number): Promise<number | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  // Field 22; the name, which is the second, ends with the last parenthesis.
  const ticks = stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  return ticks === undefined ? undefined : Number(ticks)
}
