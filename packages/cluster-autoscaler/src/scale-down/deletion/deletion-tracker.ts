/** Deletions in progress, and recent results. */
import type { Node, Pod } from '@tenon/api'
import type { LastTimes } from '../choice/cooldown.ts'
import type { DeletionJob, DeletionResult } from './deletion-job.ts'

export class DeletionTracker {
  readonly #jobs = new Map<string, DeletionJob>()
  /** Nodes whose instance is gone: UID by name. Others delete the Node later. */
  readonly #deleted = new Map<string, string | undefined>()
  readonly #lastDeletionMs = new Map<string, number>()
  readonly #lastFailureMs = new Map<string, number>()

  get count(): number {
    return this.#jobs.size
  }

  begin(job: DeletionJob): void {
    this.#jobs.set(job.node.metadata.name, job)
  }

  end(result: DeletionResult): void {
    const job = this.#jobs.get(result.nodeName)
    this.#jobs.delete(result.nodeName)
    if (result.kind === 'deleted') {
      this.#deleted.set(result.nodeName, job?.node.metadata.uid)
      this.#lastDeletionMs.set(result.groupId, result.atMs)
    } else if (result.stage === 'cloud') this.#lastFailureMs.set(result.groupId, result.atMs)
  }

  /** Forgets deleted nodes whose Node is gone or replaced. */
  forgetGone(nodes: readonly Node[]): void {
    const uids = new Map(nodes.map(({ metadata: { name, uid } }) => [name, uid]))
    for (const [name, uid] of this.#deleted) {
      if (!uids.has(name) || uids.get(name) !== uid) this.#deleted.delete(name)
    }
  }

  /** Names of nodes being deleted, or deleted but with an existing Node. */
  goingNodes(): ReadonlySet<string> {
    return new Set([...this.#jobs.keys(), ...this.#deleted.keys()])
  }

  isInProgress(nodeName: string): boolean {
    return this.#jobs.has(nodeName)
  }

  countsByGroup(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>()
    for (const { groupId } of this.#jobs.values()) counts.set(groupId, (counts.get(groupId) ?? 0) + 1)
    return counts
  }

  /** Pods that must move, by the name of the draining node. */
  draining(): ReadonlyMap<string, readonly Pod[]> {
    const jobs = [...this.#jobs].filter(([, { kind }]) => kind === 'drain')
    return new Map(jobs.map(([name, { pods }]) => [name, pods]))
  }

  /** The last successful deletion and the last failure in the cloud, by group id. */
  lastTimes(scaleUps: ReadonlyMap<string, number>): ReadonlyMap<string, LastTimes> {
    const ids = new Set([...scaleUps.keys(), ...this.#lastDeletionMs.keys(), ...this.#lastFailureMs.keys()])
    return new Map(
      [...ids].map((id) => [
        id,
        {
          scaleUpMs: scaleUps.get(id),
          deletionMs: this.#lastDeletionMs.get(id),
          failureMs: this.#lastFailureMs.get(id),
        },
      ]),
    )
  }
}
