import type { Pod } from '@tenon/api'
import type { NodeTemplate } from '../model.ts'

/** A way to help pods: this many nodes of one group. */
export interface ExpansionOption {
  readonly groupId: string
  readonly nodeCount: number
  readonly pods: readonly Pod[]
  /** The pods of each of these nodes. */
  readonly podsByNode: readonly (readonly Pod[])[]
  readonly template: NodeTemplate
}
