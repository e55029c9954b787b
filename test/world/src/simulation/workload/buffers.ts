/** CapacityBuffers, users who edit them, and pods that use the capacity. */
import { autoscalingKinds, type CapacityBuffer, kinds, type PodTemplate } from '@tenon/api'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import type { WorkloadContext } from './workload-context.ts'

const { deployment } = workloadTypes
const { capacityBuffer } = autoscalingKinds

/** One of each kind: a number of pods of a PodTemplate, a share of an application, and as many as fit into limits. */
export function buffers(context: WorkloadContext): void {
  const { dice } = context
  const most = Math.max(2, Math.min(20, Math.round(context.nodes / 2)))
  const shape = (): PodShape => ({ cpu: dice.oneOf([500, 1000, 1500]), memory: dice.oneOf([512, 1024]) })
  const guest = shape()
  const template = { ...podTemplate('room', guest) } as PodTemplate['template']
  context.create(kinds.podTemplate, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'room', namespace },
    template,
  } as PodTemplate)
  context.create(deployment, workload(deployment, 'guest', guest, { replicas: 0 }))
  const ofTemplate = { podTemplateRef: { name: 'room' } }
  const ofApplication = { kind: 'Deployment', name: 'web-0' }
  const usual: Readonly<Record<'room' | 'share' | 'capped', CapacityBuffer['spec']>> = {
    room: { ...ofTemplate, replicas: most },
    share: { scalableRef: ofApplication, percentage: dice.oneOf([20, 50, 100]) },
    capped: { ...ofTemplate, replicas: 10 * most, limits: { cpu: String(most) } },
  }
  const put = (name: keyof typeof usual): void => context.create(capacityBuffer, aBuffer(name, usual[name]))
  put('room')
  put('share')
  if (dice.chance(0.5)) put('capped')

  const edit = (name: string, spec: object): void => context.patch(capacityBuffer, name, { spec }, namespace)
  const edits = {
    resize: () => edit('room', { replicas: dice.between(0, most) }),
    share: () => edit('share', { percentage: dice.between(0, 120) }),
    template: () =>
      context.patch(kinds.podTemplate, 'room', { template: podTemplate('room', shape()) }, namespace),
    delete: () => {
      const name = dice.oneOf<keyof typeof usual>(['room', 'share', 'capped'])
      context.delete(capacityBuffer, name, namespace)
      context.later(dice.between(1, 20), () => put(name))
    },
    brief: () => {
      context.create(capacityBuffer, aBuffer('brief', { ...ofTemplate, replicas: 2 * most }))
      context.later(dice.between(0, 40) / 60, () => context.delete(capacityBuffer, 'brief', namespace))
    },
    broken: () => {
      edit('share', { scalableRef: { kind: dice.oneOf(['Job', 'Deployment']), name: 'nothing' } })
      context.later(dice.between(1, 5), () => edit('share', { scalableRef: ofApplication }))
    },
  }
  context.every(2, 9, () => {
    edits[
      dice.oneOf<keyof typeof edits>(['resize', 'resize', 'share', 'template', 'delete', 'brief', 'broken'])
    ]()
  })
  context.every(4, 12, () => {
    context.patch(
      deployment,
      'guest',
      { spec: { replicas: dice.oneOf([0, most, most, 2 * most]) } },
      namespace,
    )
  })
}

function aBuffer(name: string, spec: CapacityBuffer['spec']): CapacityBuffer {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityBuffer',
    metadata: { name, namespace },
    spec,
  }
}
