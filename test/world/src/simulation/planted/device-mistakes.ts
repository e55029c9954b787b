/** Bugs of devices. */
import { annotations, labels } from '@tenon/api'
import type { SchedulingDecider } from '@tenon/operator'
import type { Transport } from '@tenon/runtime'
import { pluralOf } from './sight.ts'

type Decided = Parameters<SchedulingDecider['decide']>[0]

function decidingOn(inner: SchedulingDecider, seen: (input: Decided) => Decided): SchedulingDecider {
  return {
    decide: (input, options) => inner.decide(seen(input), options),
    examine: (input, question, options) => inner.examine(input, question, options),
    close: () => inner.close(),
  }
}

/** Nodes whose driver has not published yet are ignored, whoever they were launched for. */
export function overlooksStartingDevices(inner: SchedulingDecider): SchedulingDecider {
  return decidingOn(inner, (input) => {
    const withDevices = new Set(
      input.pools.flatMap(({ instanceTypes }) =>
        instanceTypes.flatMap(({ name, resourceSliceTemplates = [] }) =>
          resourceSliceTemplates.length > 0 ? name : [],
        ),
      ),
    )
    const hasTold = ({ initialized, labels: own }: Decided['nodes'][number]) =>
      initialized || !withDevices.has(own[labels.instanceType] ?? '')
    const { planned: _, ...others } = input
    return { ...others, nodes: input.nodes.filter(hasTold) }
  })
}

/** Allocated devices are allocated again. */
export function promisesHeldDevices(inner: SchedulingDecider): SchedulingDecider {
  return decidingOn(inner, (input) => {
    const { devices } = input
    return devices === undefined ? input : { ...input, devices: { ...devices, allocations: [] } }
  })
}

/** New claims do not name the drivers to wait for. */
export function awaitsNoDriver(inner: Transport): Transport {
  return {
    async send(request, signal) {
      if (request.method !== 'POST' || pluralOf(request) !== 'nodeclaims')
        return await inner.send(request, signal)
      const claim = JSON.parse(String(request.body)) as {
        readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
      }
      const { [annotations.requestedDraDrivers]: _, ...others } = claim.metadata.annotations ?? {}
      const metadata = { ...claim.metadata, annotations: others }
      return await inner.send({ ...request, body: JSON.stringify({ ...claim, metadata }) }, signal)
    },
  }
}
