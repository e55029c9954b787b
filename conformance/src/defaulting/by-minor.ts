/** What kube-apiserver of other minors makes of objects otherwise than the embedded API server. */

/** The minor that the embedded API server imitates in defaults and refusals, whatever version it reports. */
export const imitatedMinor = 36

interface KnownDifference {
  /** Absent: of every kind. */
  readonly kind?: string
  /** Matches the line that describes the difference. */
  readonly is: RegExp
}

/** By minor; those that are absent are not compared. */
export const knownDifferences: Readonly<Record<number, readonly KnownDifference[]>> = {
  [imitatedMinor]: [],
  37: [
    {
      kind: 'CSIDriver',
      is: /^\.object\.spec\.preventPodSchedulingIfMissing: real false, embedded undefined$/,
    },
    { kind: 'CSINode', is: /^\.object\.status: real \{\}, embedded undefined$/ },
    {
      kind: 'HorizontalPodAutoscaler',
      is: /^\.object\.metadata\.generation: real 1, embedded undefined$/,
    },
    // The field is refused by its own name, no more by that of the security context.
    { is: /spec\.shareProcessNamespace FieldValueInvalid: real true, embedded undefined$/ },
    { is: /spec\.securityContext\.shareProcessNamespace FieldValueInvalid: real undefined, embedded true$/ },
  ],
}
