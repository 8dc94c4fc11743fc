/** The compass rose with its rhumb lines; the same drawing as public/logo.svg. */
export function Logo({ size = 32 }: { size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 48 48" aria-hidden="true" focusable="false">
      <rect width="48" height="48" rx="11" fill="#0b2a40" />
      <g fill="none" stroke="#7db6d5">
        <circle cx="24" cy="24" r="19.4" strokeWidth=".9" strokeOpacity=".75" />
        <path
          d="M31.73 5.34L26.68 17.53M42.66 16.27L30.47 21.32M42.66 31.73L30.47 26.68M31.73 42.66L26.68 30.47M16.27 42.66L21.32 30.47M5.34 31.73L17.53 26.68M5.34 16.27L17.53 21.32M16.27 5.34L21.32 17.53"
          strokeWidth=".6"
          strokeOpacity=".7"
        />
      </g>
      <path
        d="M24 24L31.92 16.08L24.00 20.40ZM24 24L31.92 31.92L27.60 24.00ZM24 24L16.08 31.92L24.00 27.60ZM24 24L16.08 16.08L20.40 24.00Z"
        fill="#4f86a6"
      />
      <path
        d="M24 24L31.92 16.08L27.60 24.00ZM24 24L31.92 31.92L24.00 27.60ZM24 24L16.08 31.92L20.40 24.00ZM24 24L16.08 16.08L24.00 20.40Z"
        fill="#8fbfd9"
      />
      <path
        d="M24 24L41.20 24.00L27.25 20.75ZM24 24L24.00 41.20L27.25 27.25ZM24 24L6.80 24.00L20.75 27.25Z"
        fill="#ffffff"
      />
      <path
        d="M24 24L41.20 24.00L27.25 27.25ZM24 24L24.00 41.20L20.75 27.25ZM24 24L6.80 24.00L20.75 20.75Z"
        fill="#a9cde0"
      />
      <path d="M24 24L24.00 6.80L20.75 20.75Z" fill="#f0c05e" />
      <path d="M24 24L24.00 6.80L27.25 20.75Z" fill="#d08f22" />
    </svg>
  );
}
