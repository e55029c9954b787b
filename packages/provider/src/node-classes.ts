/** Functions for node classes that all providers share. */
import { conditionOf, type NodeClaim, type NodeClass, type ResourceType } from '@tenon/api'
import { type Cache, done, isKubeError, type KubeClient, type ReconcileResult } from '@tenon/kube'
import { ProviderError } from './contract.ts'

/** Where node classes of a kind are read. */
export interface NodeClassSource<T extends NodeClass> {
  readonly kube: Pick<KubeClient, 'get'>
  readonly nodeClasses: Pick<Cache<T>, 'get'>
}

/**
 * The node class of a claim that is launched (scheduling.md 13.3).
 * @throws ProviderError `insufficientCapacity` if it does not exist, `nodeClassNotReady` if it is not ready, `other` if
 * the claim names none.
 */
export async function readyNodeClass<T extends NodeClass>(
  kind: ResourceType<T>,
  { kube, nodeClasses }: NodeClassSource<T>,
  claim: NodeClaim,
  signal?: AbortSignal,
): Promise<T> {
  const own = `NodeClaim ${claim.metadata.name}`
  const name = (claim.spec.nodeClassRef as { readonly name?: string } | undefined)?.name ?? ''
  if (name === '') throw new ProviderError('other', `${own}: spec.nodeClassRef names no ${kind.kind}`)
  const options = signal === undefined ? {} : { signal }
  const nodeClass = nodeClasses.get({ name }) ?? (await kube.get(kind, { name }, options))
  if (nodeClass === undefined)
    throw new ProviderError('insufficientCapacity', `${own}: ${kind.kind} ${name} does not exist`, {
      blames: { what: 'nodeClass' },
    })
  const ready = conditionOf(nodeClass, 'Ready')
  if (ready?.status === 'True') return nodeClass
  const why = ready?.message ?? ''
  throw new ProviderError(
    'nodeClassNotReady',
    `${kind.kind} ${name} is not ready${why === '' ? '' : `: ${why}`}`,
  )
}

/**
 * Runs `work` on an object of the cluster. Retries if the object has changed meanwhile; done if it was deleted.
 */
export async function unlessOvertaken(work: () => Promise<ReconcileResult>): Promise<ReconcileResult> {
  try {
    return await work()
  } catch (error) {
    if (isKubeError(error, 'conflict')) return { kind: 'backoff' }
    if (isKubeError(error, 'notFound')) return done
    throw error
  }
}
