import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The program of the process that supervises a control plane. */
export const supervisorScript = fileURLToPath(new URL('supervisor.ts', import.meta.url))

/** A running control plane, as reported to callers and stored in its folder. */
export interface ControlPlaneState {
  /** The process that stops everything on SIGTERM. */
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

/** The control plane running in `folder`, or undefined; a state file without a live process is ignored. */
export function readState(folder: string): ControlPlaneState | undefined {
  const file = stateFile(folder)
  if (!existsSync(file)) return undefined
  const state = JSON.parse(readFileSync(file, 'utf8')) as ControlPlaneState
  return isSupervisor(state.pid) ? state : undefined
}

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** The process id may have been reused by an unrelated program. */
function isSupervisor(pid: number): boolean {
  if (!isAlive(pid)) return false
  const ps = spawnSync('ps', ['-o', 'args=', '-p', String(pid)], { encoding: 'utf8' })
  return ps.stdout.includes(supervisorScript)
}
