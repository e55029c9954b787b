/** CapacityBuffers, users who edit them, and pods that come for the room. */
import { autoscalingKinds, type CapacityBuffer, kinds, type PodTemplate } from '@tenon/api'
import { namespace, type PodShape, podTemplate, workload, workloadTypes } from './objects.ts'
import type { Hands } from './workload-context.ts'

const { deployment } = workloadTypes
const { capacityBuffer } = autoscalingKinds

/** Of each kind one: a PodTemplate with a number, a share of an application, and what fits into limits. */
export function buffers(hands: Hands): void {
  const { dice } = hands
  const most = Math.max(2, Math.min(20, Math.round(hands.nodes / 2)))
  const shape = (): PodShape => ({ cpu: dice.oneOf([500, 1000, 1500]), memory: dice.oneOf([512, 1024]) })
  const guest = shape()
  const template = { ...podTemplate('room', guest) } as PodTemplate['template']
  hands.create(kinds.podTemplate, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 'room', namespace },
    template,
  } as PodTemplate)
  hands.create(deployment, workload(deployment, 'guest', guest, { replicas: 0 }))
  const ofTemplate = { podTemplateRef: { name: 'room' } }
  const ofApplication = { kind: 'Deployment', name: 'web-0' }
  const usual: Readonly<Record<'room' | 'share' | 'capped', CapacityBuffer['spec']>> = {
    room: { ...ofTemplate, replicas: most },
    share: { scalableRef: ofApplication, percentage: dice.oneOf([20, 50, 100]) },
    capped: { ...ofTemplate, replicas: 10 * most, limits: { cpu: String(most) } },
  }
  const put = (name: keyof typeof usual): void => hands.create(capacityBuffer, aBuffer(name, usual[name]))
  put('room')
  put('share')
  if (dice.chance(0.5)) put('capped')

  const edit = (name: string, spec: object): void => hands.patch(capacityBuffer, name, { spec }, namespace)
  const edits = {
    resize: () => edit('room', { replicas: dice.between(0, most) }),
    share: () => edit('share', { percentage: dice.between(0, 120) }),
    template: () =>
      hands.patch(kinds.podTemplate, 'room', { template: podTemplate('room', shape()) }, namespace),
    delete: () => {
      const name = dice.oneOf<keyof typeof usual>(['room', 'share', 'capped'])
      hands.delete(capacityBuffer, name, namespace)
      hands.later(dice.between(1, 20), () => put(name))
    },
    brief: () => {
      hands.create(capacityBuffer, aBuffer('brief', { ...ofTemplate, replicas: 2 * most }))
      hands.later(dice.between(0, 40) / 60, () => hands.delete(capacityBuffer, 'brief', namespace))
    },
    broken: () => {
      edit('share', { scalableRef: { kind: dice.oneOf(['Job', 'Deployment']), name: 'nothing' } })
      hands.later(dice.between(1, 5), () => edit('share', { scalableRef: ofApplication }))
    },
  }
  hands.every(2, 9, () => {
    edits[
      dice.oneOf<keyof typeof edits>(['resize', 'resize', 'share', 'template', 'delete', 'brief', 'broken'])
    ]()
  })
  hands.every(4, 12, () => {
    hands.patch(deployment, 'guest', { spec: { replicas: dice.oneOf([0, most, most, 2 * most]) } }, namespace)
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
