/** Why pods are pending, nodes stay and groups do not grow, as of the last iteration. */
import type { Node, Pod } from '@tenon/api'
import type { NodeGroup } from '@tenon/provider'
import type { ScaleDownOutcome } from '../scale-down/outcome.ts'
import { renderReason } from '../scale-down/reasons.ts'
import type { RunningReport } from './status-report.ts'

/** What is explained. */
export type Subject =
  /** `namespace/name`. */
  | { readonly kind: 'pod'; readonly name: string }
  | { readonly kind: 'node'; readonly name: string }
  /** Its id, or its name in `--nodes`. */
  | { readonly kind: 'group'; readonly name: string }
  /** A ProvisioningRequest: `namespace/name`. */
  | { readonly kind: 'request'; readonly name: string }

interface Grouped {
  readonly groupOf: ReadonlyMap<string, string>
  readonly unresolved: ReadonlyMap<string, string>
  readonly outside: ReadonlyMap<string, string>
}

export class Explanations {
  readonly #pods = new Map<string, string>()
  readonly #nodes = new Map<string, string>()
  readonly #groups = new Map<string, string>()
  readonly #requests = new Map<string, string>()
  #atMs: number | undefined

  /** Begins an iteration: drops explanations of the last one. */
  begin(nowMs: number): void {
    this.#atMs = nowMs
    this.#pods.clear()
    this.#nodes.clear()
    this.#groups.clear()
    this.#requests.clear()
  }

  waiting(pods: Iterable<Pod>, why: string): void {
    for (const { metadata } of pods)
      this.#pods.set(`${metadata.namespace ?? 'default'}/${metadata.name}`, why)
  }

  /** @param key `namespace/name`. */
  request(key: string, why: string): void {
    this.#requests.set(key, why)
  }

  nodes(nodes: readonly Node[], { groupOf, unresolved, outside }: Grouped): void {
    for (const { metadata } of nodes) {
      const { name } = metadata
      const why = unresolved.get(name) ?? outside.get(name)
      if (why !== undefined) this.#nodes.set(name, `in no node group that can be scaled: ${why}`)
      else if (!groupOf.has(name)) this.#nodes.set(name, 'in no node group')
    }
  }

  scaleDown({ unneeded, unremovable }: ScaleDownOutcome, groupOf: ReadonlyMap<string, string>): void {
    const inGroup = (name: string) => `in node group ${groupOf.get(name) ?? '(none)'}`
    for (const { node, sinceMs } of unneeded) {
      const { name } = node.metadata
      this.#nodes.set(name, `${inGroup(name)}, not needed since ${new Date(sinceMs).toISOString()}`)
    }
    for (const { nodeName, reason } of unremovable) {
      if (reason.kind === 'NotAutoscaled') continue
      const before = this.#nodes.get(nodeName) ?? inGroup(nodeName)
      this.#nodes.set(nodeName, `${before}; it stays: ${renderReason(reason)}`)
    }
  }

  groups(groups: Iterable<NodeGroup>, { groups: reports, faults, holds }: RunningReport): void {
    const byId = new Map(reports.map((each) => [each.id, each]))
    for (const { id, name, minSize, maxSize, targetSize } of groups) {
      const report = byId.get(id)
      const hold = holds.get(id)
      const frozen = hold?.forbids === 'all' ? 'changed' : 'shrunk'
      const state = [
        faults.get(id) === undefined ? undefined : `it is not scaled: ${faults.get(id)}`,
        hold === undefined ? undefined : `it is not ${frozen}: ${hold.reason}`,
        report?.isHealthy === false ? 'too many of its nodes are not ready' : undefined,
        report?.isScalingUp === true ? 'nodes of it are on their way' : undefined,
        report?.backoff === undefined
          ? undefined
          : `it is left alone after a failure: ${report.backoff.message}`,
        targetSize >= maxSize ? 'it has its maximum size' : undefined,
        targetSize <= minSize ? 'it has its minimum size' : undefined,
        `${report?.candidates ?? 0} of its nodes are not needed`,
      ].filter((each) => each !== undefined)
      const text = `node group ${name} (${id}): size ${targetSize}, between ${minSize} and ${maxSize}; ${state.join('; ')}`
      this.#groups.set(id, text)
      this.#groups.set(name, text)
    }
    this.#leftOut(faults)
  }

  #leftOut(faults: ReadonlyMap<string, string>): void {
    for (const [id, reason] of faults)
      if (!this.#groups.has(id)) this.#groups.set(id, `node group ${id}: it is not scaled: ${reason}`)
  }

  /** @returns an explanation in one or two sentences. */
  of({ kind, name }: Subject): string {
    if (this.#atMs === undefined) return 'no loop has run yet'
    const at = `as of ${new Date(this.#atMs).toISOString()}`
    if (kind === 'pod') return `pod ${name}, ${at}: ${this.#pods.get(name) ?? 'it does not wait for a node'}`
    if (kind === 'node') return `node ${name}, ${at}: ${this.#nodes.get(name) ?? 'not looked at'}`
    if (kind === 'request')
      return `ProvisioningRequest ${name}, ${at}: ${this.#requests.get(name) ?? 'it is not served here'}`
    return `${this.#groups.get(name) ?? `node group ${name} is not known`}, ${at}`
  }
}
