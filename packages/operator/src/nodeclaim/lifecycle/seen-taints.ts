/** Which taints Nodes had before they were taken under management. */
import { karpenterKinds, type Node, sameTaint, type Taint } from '@tenon/api'
import type { Cache } from '@tenon/kube'

/**
 * An agent may take a startup taint off before the Node is registered: what was seen once and is missing now was taken
 * off. By UID, until the Node has a NodeClaim as its owner, which tells the same from then on.
 */
export class SeenTaints {
  readonly #byNode = new Map<string, readonly Taint[]>()

  constructor(nodes: Pick<Cache<Node>, 'onChange'>) {
    nodes.onChange(({ kind, object }) => {
      const { uid = '' } = object.metadata
      if (kind === 'deleted' || isOwned(object)) this.#byNode.delete(uid)
      else this.#see(uid, object.spec?.taints)
    })
  }

  #see(uid: string, taints: unknown): void {
    if (!Array.isArray(taints)) return
    const known = this.#byNode.get(uid) ?? []
    const added = (taints as readonly Taint[]).filter(
      (taint) => !known.some((each) => sameTaint(each, taint)),
    )
    if (added.length > 0) this.#byNode.set(uid, [...known, ...added])
  }

  has({ metadata: { uid = '' } }: Node, taint: Taint): boolean {
    return this.#byNode.get(uid)?.some((each) => sameTaint(each, taint)) === true
  }
}

function isOwned({ metadata }: Node): boolean {
  const { kind } = karpenterKinds.nodeClaim
  return (metadata.ownerReferences ?? []).some((owner) => owner.kind === kind)
}
