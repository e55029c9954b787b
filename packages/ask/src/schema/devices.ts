/** Devices of instance types in files (devices.md 3.2). */
import type {
  AttributeBinding,
  CapacityRequestPolicy,
  CounterSet,
  Device,
  DeviceAttribute,
  DeviceCapacity,
  DeviceCounterConsumption,
  DeviceTaint,
  InstanceType,
  NodeSelector,
  NodeSelectorRequirement,
  NodeSelectorTerm,
  ResourceSliceTemplate,
  TemplateDeviceRef,
} from '@tenon/api'
import { byName, decimal, list, object, optional, type Schema, text, time, truth, words } from './build.ts'

const expression = object<NodeSelectorRequirement>({
  key: text(),
  operator: words<NodeSelectorRequirement['operator']>({
    In: '',
    NotIn: '',
    Exists: '',
    DoesNotExist: '',
    Gt: '',
    Lt: '',
  }),
  values: optional(list(text())),
})

const counter = object<{ readonly value: string }>({ value: text() })

const device = object<Device>({
  name: text(),
  attributes: optional(
    byName(
      object<DeviceAttribute>({
        int: optional(decimal()),
        bool: optional(truth()),
        string: optional(text()),
        version: optional(text()),
        ints: optional(list(decimal())),
        bools: optional(list(truth())),
        strings: optional(list(text())),
        versions: optional(list(text())),
      }),
    ),
  ),
  capacity: optional(
    byName(
      object<DeviceCapacity>({
        value: text(),
        requestPolicy: optional(
          object<CapacityRequestPolicy>({
            default: optional(text()),
            validValues: optional(list(text())),
            validRange: optional(
              object<NonNullable<CapacityRequestPolicy['validRange']>>({
                min: text(),
                max: optional(text()),
                step: optional(text()),
              }),
            ),
          }),
        ),
      }),
    ),
  ),
  allowMultipleAllocations: optional(truth()),
  consumesCounters: optional(
    list(object<DeviceCounterConsumption>({ counterSet: text(), counters: byName(counter) })),
  ),
  taints: optional(
    list(
      object<DeviceTaint>({
        key: text(),
        value: optional(text()),
        effect: words<DeviceTaint['effect']>({ None: '', NoSchedule: '', NoExecute: '' }),
        timeAdded: optional(time()),
      }),
    ),
  ),
  nodeName: optional(text()),
  nodeSelector: optional(
    object<NodeSelector>({
      nodeSelectorTerms: list(
        object<NodeSelectorTerm>({
          matchExpressions: optional(list(expression)),
          matchFields: optional(list(expression)),
        }),
      ),
    }),
  ),
  allNodes: optional(truth()),
})

export const sliceTemplates: Schema<NonNullable<InstanceType['resourceSliceTemplates']>> = list(
  object<ResourceSliceTemplate>({
    driver: text(),
    pool: text(),
    devices: list(device),
    sharedCounters: optional(list(object<CounterSet>({ name: text(), counters: byName(counter) }))),
  }),
)

export const attributeBindings: Schema<NonNullable<InstanceType['attributeBindings']>> = list(
  object<AttributeBinding>({
    attribute: text(),
    devices: list(object<TemplateDeviceRef>({ driver: text(), pool: text(), device: text() })),
  }),
)
