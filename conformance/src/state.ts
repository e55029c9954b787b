import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The program of the process that keeps a control plane. */
export const supervisorScript = fileURLToPath(new URL('supervisor.ts', import.meta.url))

/** A running control plane, as told to whoever asks and as kept in its folder. */
export interface ControlPlaneState {
  /** The process that stops everything when it gets SIGTERM. */
  readonly pid: number
  readonly folder: string
  readonly endpoint: string
  readonly kubeconfigPath: string
  /** The API server's version, such as `v1.36.3`. */
  readonly version: string
}

export function stateFile(folder: string): string {
  return join(folder, 'control-plane.json')
}

/** The control plane running in `folder`, or `undefined`; a state file whose process is gone counts as none. */
export function readState(folder: string): ControlPlaneState | undefined {
  const file = stateFile(folder)
  if (!existsSync(file)) return undefined
  const state = JSON.parse(readFileSync(file, 'utf8')) as ControlPlaneState
  return isSupervisor(state.pid) ? state : undefined
}

/** Whether the process exists. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** A process id may have passed to an unrelated program since the state was written. */
function isSupervisor(pid: number): boolean {
  if (!isAlive(pid)) return false
  const ps = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  return ps.stdout.includes(supervisorScript)
}
