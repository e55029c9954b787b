/** What the Kubernetes scheduler says of pods that it refuses. */
import { kinds, type Pod } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { isActive } from '../../cluster/pods/pods.ts'

/** What this file works with. */
interface Dependencies {
  readonly client: Pick<KubeClient, 'list'>
}

export class PodRefusals {
  readonly #deps: Dependencies

  constructor(deps: Dependencies) {
    this.#deps = deps
  }

  /** What the scheduler says of the pod now, asked of the API server; undefined when it does not refuse it any more. */
  async wordsOf(pod: Pod, signal: AbortSignal): Promise<string | undefined> {
    const { name, namespace = '', uid } = pod.metadata
    const { client } = this.#deps
    // As a list, which is what this process has the right to read pods by.
    const [now] = await client
      .list(kinds.pod, { namespace, fieldSelector: `metadata.name=${name}`, signal })
      .catch((error: unknown): Pod[] => {
        if (!isKubeError(error)) throw error
        // It is asked again before the next decision.
        return []
      })
    if (now === undefined || now.metadata.uid !== uid || (now.spec.nodeName ?? '') !== '' || !isActive(now))
      return undefined
    const condition = now.status?.conditions?.find(({ type }) => type === 'PodScheduled')
    if (condition?.status !== 'False' || condition.reason !== 'Unschedulable') return undefined
    return condition.message ?? ''
  }
}
