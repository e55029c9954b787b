import { ConditionSet, conditionOf, karpenterKinds, type NewCondition } from '@tenon/api'
import { isUnavailable, type KubeClient } from '@tenon/kube'
import type { Clock } from '@tenon/runtime'
import type { SingletonSpec } from '../controller.ts'
import { patchStatus } from '../patch-status.ts'
import type { Settings } from '../settings.ts'
import { nodeOverlayConditions } from '../state/conditions.ts'
import { isWhole } from '../state/readable.ts'

const periodMs = 60_000

const ignored: NewCondition = {
  type: 'FieldIgnored',
  status: 'True',
  reason: 'FeatureGateOff',
  message:
    'The NodeOverlay has no effect while feature gate NodeOverlay is off; start the controller with --feature-gates NodeOverlay=true',
}

/** `nodeoverlay.ignored`: says on NodeOverlays that they have no effect, while the feature gate is off. */
export function ignoredOverlays(
  client: KubeClient,
  { featureGates }: Pick<Settings, 'featureGates'>,
  clock: Clock,
): SingletonSpec {
  return {
    name: 'nodeoverlay.ignored',
    async run(signal) {
      const isIgnored = !featureGates.nodeOverlay
      const all = await overlays(client, signal)
      for (const overlay of all.filter((each) => isWhole(karpenterKinds.nodeOverlay.kind, each))) {
        if ((conditionOf(overlay, ignored.type) !== undefined) === isIgnored) continue
        const before = ConditionSet.of(overlay, nodeOverlayConditions)
        const { conditions } = isIgnored ? before.set(ignored, clock.now()) : before.clear(ignored.type)
        await patchStatus(client, karpenterKinds.nodeOverlay, overlay, { conditions })
      }
      return { kind: 'after', delayMs: periodMs }
    },
  }
}

/** None where the kind is not served or may not be read. */
async function overlays(client: KubeClient, signal: AbortSignal) {
  try {
    return await client.list(karpenterKinds.nodeOverlay, { signal })
  } catch (error) {
    if (isUnavailable(error)) return []
    throw error
  }
}
