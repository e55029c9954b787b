import { capacityBufferCases } from './capacitybuffer-cases.test-support.ts'
import { capacityQuotaCases } from './capacityquota-cases.test-support.ts'
import type { CrdCase } from './crd-case.test-support.ts'
import { formCases } from './form-cases.test-support.ts'
import { nodeClaimCases } from './nodeclaim-cases.test-support.ts'
import { nodeClassCases } from './node-class-cases.test-support.ts'
import { nodeOverlayCases } from './nodeoverlay-cases.test-support.ts'
import { nodePoolCases } from './nodepool-cases.test-support.ts'
import { provisioningRequestCases } from './provisioningrequest-cases.test-support.ts'
import { publicExamples } from './public-examples.test-support.ts'
import { templateCases } from './template-cases.test-support.ts'

/** Every case on Tenon's CRDs, in groups that run on one API server after another. */
export const crdCases: Readonly<Record<string, readonly CrdCase[]>> = {
  NodePool: nodePoolCases,
  'requirements and taints': templateCases,
  'forms of values': formCases,
  NodeClaim: nodeClaimCases,
  NodeOverlay: nodeOverlayCases,
  CapacityBuffer: capacityBufferCases,
  CapacityQuota: capacityQuotaCases,
  ProvisioningRequest: provisioningRequestCases,
  'node classes': nodeClassCases,
  'public examples': publicExamples,
}
