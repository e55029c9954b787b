/** The workers of all MachineDeployments (cluster-api.md 8). */
import { ownValue } from '@tenon/api'
import { type HubKey, hubKeyOf, hubText } from '../hub/keys.ts'
import { DeploymentWorker } from './deployment-worker.ts'
import type { WorkerDependencies } from './deployment-writes.ts'
import type { FollowedMachines } from './followed-machines.ts'

/** One worker for each MachineDeployment that is changed. */
export class Deployments {
  readonly #deps: WorkerDependencies
  readonly #workers = new Map<string, DeploymentWorker>()

  constructor(deps: WorkerDependencies, followed: FollowedMachines) {
    this.#deps = deps
    followed.changes.add((machine) => {
      const name = ownValue(machine.metadata.labels, deps.hub.names.deploymentName)
      if (name !== undefined) this.#workers.get(hubText({ ...hubKeyOf(machine), name }))?.changed()
    })
  }

  worker(key: HubKey): DeploymentWorker {
    const text = hubText(key)
    const worker = this.#workers.get(text) ?? new DeploymentWorker(key, this.#deps)
    this.#workers.set(text, worker)
    return worker
  }

  /** Ends the waiting of a claim at every MachineDeployment. Afterwards nothing is bound to it any more. */
  async forget(claimUid: string): Promise<void> {
    await Promise.all(Array.from(this.#workers.values(), (worker) => worker.forget(claimUid)))
  }
}
