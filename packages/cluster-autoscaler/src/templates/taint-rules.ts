/** Which taints of a node mean that it is starting, or only show a status (cluster-autoscaler.md 2.6). */
import type { Node, Taint } from '@tenon/api'
import { deletionCandidateTaint, toBeDeletedTaint } from '../names.ts'
import { asNotReady } from '../registry/node-state.ts'
import type { TaintOptions } from '../options/options.ts'

const startupPrefixes = [
  'startup-taint.cluster-autoscaler.kubernetes.io/',
  'ignore-taint.cluster-autoscaler.kubernetes.io/',
]
const statusPrefix = 'status-taint.cluster-autoscaler.kubernetes.io/'

/** Taints that show the state of one node; a new node does not have them. */
const conditionTaints: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/unschedulable',
  'node.kubernetes.io/memory-pressure',
  'node.kubernetes.io/disk-pressure',
  'node.kubernetes.io/network-unavailable',
  'node.kubernetes.io/pid-pressure',
  'node.cloudprovider.kubernetes.io/uninitialized',
  'node.cloudprovider.kubernetes.io/shutdown',
  'cloud.google.com/impending-node-termination',
  'NodeWithImpairedVolumes',
])

/** How a taint is counted in `node_taints_count`: by its own key, or by kind. */
export type TaintKind =
  | { readonly kind: 'own' | 'condition'; readonly key: string }
  | { readonly kind: 'startup' | 'ignore' | 'status' | 'other' }

export class TaintRules {
  readonly #startup: ReadonlySet<string>
  readonly #prefixes: readonly string[]
  readonly #status: ReadonlySet<string>

  /** @param ofCloud the cloud's own startup taint. */
  constructor({ startupTaints, startupTaintPrefixes, statusTaints }: TaintOptions, ofCloud?: string) {
    this.#startup = new Set(ofCloud === undefined ? startupTaints : [...startupTaints, ofCloud])
    this.#prefixes = [...startupPrefixes, ...startupTaintPrefixes]
    this.#status = new Set(statusTaints)
  }

  /** A node with such a taint counts as not ready. */
  isStartup(key: string): boolean {
    return this.#startup.has(key) || this.#prefixes.some((prefix) => key.startsWith(prefix))
  }

  /** New nodes do not have it. */
  isStatus(key: string): boolean {
    return this.#status.has(key) || key.startsWith(statusPrefix)
  }

  kindOf({ key }: Taint): TaintKind {
    if (key === toBeDeletedTaint || key === deletionCandidateTaint) return { kind: 'own', key }
    if (conditionTaints.has(key)) return { kind: 'condition', key }
    if (key.startsWith('ignore-taint.')) return { kind: 'ignore' }
    if (this.isStartup(key)) return { kind: 'startup' }
    return this.isStatus(key) ? { kind: 'status' } : { kind: 'other' }
  }

  /** Taints of a new node of the same group. */
  ofNewNode(taints: readonly Taint[] | undefined): readonly Taint[] {
    return (taints ?? []).filter((taint) => this.kindOf(taint).kind === 'other')
  }

  /** The node with its startup taints: not ready while it has one. */
  asSeen(node: Node): Node {
    if (!(node.spec?.taints ?? []).some(({ key }) => this.isStartup(key))) return node
    return asNotReady(node, 'cluster-autoscaler.kubernetes.io/startup-taint')
  }
}
