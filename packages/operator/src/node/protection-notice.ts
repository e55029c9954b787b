/** What owners of pods are told of annotation `karpenter.sh/do-not-disrupt` (lifecycle.md 4.4, disruption.md 18). */
import { annotations, type Pod } from '@tenon/api'
import type { EventInput } from '@tenon/kube'
import { rfc3339 } from '@tenon/runtime'
import { doNotDisrupt } from '../state/pods/pods.ts'

type Notice = Omit<EventInput, 'object'> & { readonly dedupe: readonly string[] }

/** What is to be said of the pod's annotation, if anything: that it is ignored, until when it holds, or that it did. */
export function protectionNotice(pod: Pod, nowMs: number): Notice | undefined {
  const protection = doNotDisrupt(pod, nowMs)
  const { uid = '' } = pod.metadata
  const key = annotations.doNotDisrupt
  if (protection.kind === 'invalid') {
    return {
      type: 'Warning',
      reason: 'InvalidDoNotDisruptAnnotation',
      message: `Annotation ${key} "${protection.value}" is neither "true" nor a positive duration; it is ignored`,
      dedupe: [uid, protection.value],
    }
  }
  if (protection.kind === 'elapsed') {
    return {
      type: 'Normal',
      reason: 'DoNotDisruptGracePeriodElapsed',
      message: `The time for which ${key} protects the pod is over`,
      dedupe: [uid],
    }
  }
  if (protection.kind !== 'active' || !Number.isFinite(protection.untilMs)) return undefined
  const until = rfc3339(protection.untilMs)
  return {
    type: 'Normal',
    reason: 'DoNotDisruptUntil',
    message: `${key} protects the pod until ${until}`,
    dedupe: [uid, until],
  }
}
