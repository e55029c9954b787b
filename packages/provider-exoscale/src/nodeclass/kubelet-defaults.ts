/** The defaults of the ExoscaleNodeClass schema. */
export const kubeletDefaults = {
  clusterDNS: ['10.96.0.10'],
  imageGCHighThresholdPercent: 85,
  imageGCLowThresholdPercent: 80,
  imageMinimumGCAge: '2m',
  kubeReserved: { cpu: '200m', memory: '300Mi', ephemeralStorage: '1Gi' },
  systemReserved: { cpu: '100m', memory: '100Mi', ephemeralStorage: '3Gi' },
} as const
